// Any names and spacing are read; the output is canonical.
graph   @"a \22b\22"(%x : f32 [ 2 , 3 ],%y:f32[])->(f32[2,3],f32[2,3]){// a comment
%big=broadcast %y{shape=[2,3],axes=[]}:f32[2,3] %sum = add %x, %big : f32[2,3]
  %r = reverse %sum {axes = [1,0]} : f32[2,3]
return %sum,%r}
